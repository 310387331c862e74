"""Name the tests that failed in the last run; exit with 1 unless they are few.

Many tests run side by side, each with servers of its own. A test that fails there and passes
alone was short of something: it gets a second look, and its name is printed so that it is mended.
More than a few failures are no accident, and neither is a run that failed without a failed test.
"""

import json
import sys
from pathlib import Path

FEW = 8
FAILED = Path(".pytest_cache/v/cache/lastfailed")


def main() -> int:
    failed = list(json.loads(FAILED.read_text())) if FAILED.exists() else []
    if not 0 < len(failed) <= FEW:
        print(f"{len(failed)} tests failed: no second look")
        return 1
    FAILED.write_text(json.dumps({name.rsplit("@", 1)[0]: True for name in failed}))
    print(f"{len(failed)} failed beside the others, now each of them alone:", *failed, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())

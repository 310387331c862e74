"""What could go wrong, or has."""

import asyncio

from laneway.conformance.registry import case
from laneway.conformance.world import World
from laneway.inspection import Finding


async def found(world: World, check: str) -> Finding:
    findings = await world.queue.diagnose()
    named = [finding for finding in findings if finding.check == check]
    assert len(named) == 1, findings
    return named[0]


@case("diagnose", "every finding that is not well says what to do")
async def mended(world: World) -> None:
    findings = await world.queue.diagnose()
    assert len({finding.check for finding in findings}) == len(findings) >= 3
    for finding in findings:
        assert finding.message
        assert (finding.fix is None) == (finding.level == "ok"), finding


@case("diagnose", "says that the schema is as this package needs it")
async def schema(world: World) -> None:
    assert (await found(world, "schema")).level == "ok"


@case("diagnose", "finds that nobody takes expired leases back, and that somebody does")
async def upkeep(world: World) -> None:
    await world.upkeep()
    await world.fill("a", 2)
    await world.queue.claim(2)
    assert (await found(world, "upkeep")).level == "ok"
    world.clock.advance(120)
    late = await found(world, "upkeep")
    assert late.level == "fail" and late.fix
    await eventually_well(world)


async def eventually_well(world: World) -> None:
    """Leases of other cases are seen too, and one whose holder's connection has just ended is
    left to the next upkeep."""
    for _ in range(50):
        await world.upkeep()
        if (await found(world, "upkeep")).level == "ok":
            return
        await asyncio.sleep(0.1)
    raise AssertionError(await found(world, "upkeep"))

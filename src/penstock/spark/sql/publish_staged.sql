select p.published, p.existing, p.repeated
from {schema}.publish_staged_v1(
    {job}, {names}::text[], {counts}::bigint[], {source}::text, {batch}::bigint, {kind},
    {content_type}, {priority}::smallint, {max_attempts}) p

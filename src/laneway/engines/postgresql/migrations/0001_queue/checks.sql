-- What a verb may be given. The client checks the same before it sends anything (tests/security/test_arguments.py compares
-- the two), but a role may call these functions with any SQL, and what it stores is read by claims, by upkeep and by lists.
--
-- Every check raises 22023 and names what is wrong. Null passes: it means that nothing is given.

create or replace function "laneway".invalid_v1(p_what text, p_problem text)
returns void
language plpgsql
as $$
begin
    raise exception 'laneway: the % %', p_what, p_problem using errcode = 'invalid_parameter_value';
end
$$;

-- Whether it fits, as expressions: where a function of SQL is inlined, asking costs next to nothing.
create or replace function "laneway".is_name_v1(p_name text)
returns boolean
language sql immutable parallel safe
return octet_length(p_name) between 1 and 255;

create or replace function "laneway".is_content_type_v1(p_type text)
returns boolean
language sql immutable parallel safe
return octet_length(p_type) between 1 and 255 and p_type collate "C" !~ '[^ -~]';

create or replace function "laneway".is_length_v1(p_length interval)
returns boolean
language sql immutable parallel safe
return p_length >= interval '0' and p_length <= interval '36600 days';

-- The very first and last moments stand for infinity in some drivers.
create or replace function "laneway".is_time_v1(p_time timestamptz)
returns boolean
language sql immutable parallel safe
return p_time > timestamptz '0001-01-01 00:00:00+00' and p_time < timestamptz '9999-12-31 23:59:59.999999+00';

-- What may be stored: a mebibyte, or what the settings say. They are not for the owner, whose clients know their own.
create or replace function "laneway".most_payload_v1()
returns integer
language plpgsql stable
as $$
begin
    return case when pg_has_role(session_user, current_user, 'member') then 268435456
        else (select s.max_payload from "laneway".setting s) end;
end
$$;

-- A payload, a state or a result.
create or replace function "laneway".is_payload_v1(p_payload bytea)
returns boolean
language sql stable
return octet_length(p_payload) <= 1048576 or octet_length(p_payload) <= "laneway".most_payload_v1();

-- An object, not deeper than 100 levels, of numbers that every reader can hold: jsonb writes 1e131071 out in full.
-- What is short cannot be deep. (A regular expression that finds long numbers costs eight times as much as to look at all.)
create or replace function "laneway".is_headers_v1(p_headers text)
returns boolean
language sql immutable parallel safe
return octet_length(p_headers) <= 65536 and jsonb_typeof(p_headers::jsonb) = 'object'
    and (octet_length(p_headers) < 200 or not jsonb_path_exists(p_headers::jsonb, 'strict $.**{100} ? (@.type() == "object" || @.type() == "array")'))
    and not jsonb_path_exists(
        p_headers::jsonb, 'strict $.** ? (@.type() == "number" && (@ > 1.8e308 || @ < -1.8e308 || (@ != 0 && @ < 1e-400 && @ > -1e-400)))');

-- Names: of queues, channels, keys, topics, workers, limits. A kind, and the start of a name, may be empty.
create or replace function "laneway".check_names_v1(p_what text, p_names text[], p_empty boolean default false)
returns void
language plpgsql
as $$
declare
    v_name text;
begin
    foreach v_name in array coalesce(p_names, '{}') loop
        if is_name_v1(v_name) is false and not (p_empty and v_name = '') then
            perform invalid_v1(p_what, case when v_name = '' then 'is empty: give it a name'
                else format('has %s bytes, 255 are allowed', octet_length(v_name)) end);
        end if;
    end loop;
end
$$;

-- Text for people.
create or replace function "laneway".check_texts_v1(p_what text, p_texts text[], p_most integer default 1000)
returns void
language plpgsql
as $$
declare
    v_text text;
begin
    foreach v_text in array coalesce(p_texts, '{}') loop
        if length(v_text) > p_most then
            perform invalid_v1(p_what, format('has %s characters, %s are allowed', length(v_text), p_most));
        end if;
    end loop;
end
$$;

create or replace function "laneway".check_choice_v1(p_what text, p_value text, p_choices text[])
returns void
language plpgsql
as $$
begin
    if p_value <> all(p_choices) then
        perform invalid_v1(p_what, format('is %L: use one of %s', left(p_value, 100), array_to_string(p_choices, ', ')));
    end if;
end
$$;

create or replace function "laneway".check_content_types_v1(p_types text[])
returns void
language plpgsql
as $$
declare
    v_type text;
begin
    foreach v_type in array coalesce(p_types, '{}') loop
        if is_content_type_v1(v_type) is false then
            perform invalid_v1('content type', 'must be 1 to 255 printable characters of ASCII');
        end if;
    end loop;
end
$$;

create or replace function "laneway".check_headers_v1(p_headers text[])
returns void
language plpgsql
as $$
declare
    v_headers text;
begin
    foreach v_headers in array coalesce(p_headers, '{}') loop
        if is_headers_v1(v_headers) is false then
            perform invalid_v1('headers', case when octet_length(v_headers) > 65536
                then format('have %s bytes, 65536 are allowed: put what is long into the payload', octet_length(v_headers))
                else 'must be an object of JSON, at most 100 levels deep, with numbers below 1.8e308' end);
        end if;
    end loop;
end
$$;

create or replace function "laneway".check_payloads_v1(p_what text, p_payloads bytea[])
returns void
language plpgsql
as $$
declare
    v_payload bytea;
begin
    foreach v_payload in array coalesce(p_payloads, '{}') loop
        if is_payload_v1(v_payload) is false then
            perform invalid_v1(p_what, format(
                'has %s bytes, %s are allowed: store it elsewhere and send a reference, or raise max_payload in the settings',
                octet_length(v_payload), most_payload_v1()));
        end if;
    end loop;
end
$$;

create or replace function "laneway".check_times_v1(p_what text, p_times timestamptz[])
returns void
language plpgsql
as $$
declare
    v_time timestamptz;
begin
    foreach v_time in array coalesce(p_times, '{}') loop
        if is_time_v1(v_time) is false then
            perform invalid_v1(p_what, format('is %s: it must lie inside of the years 1 to 9999 in UTC', v_time));
        end if;
    end loop;
end
$$;

create or replace function "laneway".check_lengths_v1(
    p_what text, p_lengths interval[], p_least interval default '0', p_most interval default '36600 days'
) returns void
language plpgsql
as $$
declare
    v_length interval;
begin
    foreach v_length in array coalesce(p_lengths, '{}') loop
        if (v_length between p_least and p_most) is false then
            perform invalid_v1(p_what, format('is %s: it must be between %s and %s', v_length, p_least, p_most));
        end if;
    end loop;
end
$$;

-- For how long messages are leased. Like p_now, a lease that has ended already is for the owner, who tests what comes then.
create or replace function "laneway".check_leases_v1(p_lengths interval[])
returns void
language plpgsql
as $$
begin
    if not pg_has_role(session_user, current_user, 'member') then
        perform check_lengths_v1('lease', p_lengths, '1 second', '1 day');
    end if;
end
$$;

create or replace function "laneway".check_numbers_v1(
    p_what text, p_numbers double precision[], p_least double precision, p_most double precision default 9223372036854775807
) returns void
language plpgsql
as $$
declare
    v_number double precision;
begin
    foreach v_number in array coalesce(p_numbers, '{}') loop
        if (v_number between p_least and p_most) is false then
            perform invalid_v1(p_what, format('is %s: it must be between %s and %s', v_number, p_least, p_most));
        end if;
    end loop;
end
$$;

-- Arrays that belong together.
create or replace function "laneway".check_counts_v1(p_what text, p_counts integer[])
returns void
language plpgsql
as $$
declare
    v_count integer;
begin
    foreach v_count in array p_counts loop
        if v_count <> p_counts[1] then
            perform invalid_v1(p_what, format('are %s and %s: give arrays of the same length', p_counts[1], v_count));
        end if;
    end loop;
end
$$;

-- A burst of a rate lasts a century at most.
create or replace function "laneway".check_limits_v1(p_concurrency bigint[], p_rate double precision[], p_burst bigint[])
returns void
language plpgsql
as $$
begin
    perform check_numbers_v1('concurrency', p_concurrency, 1), check_numbers_v1('rate', p_rate, 1e-6, 1e9),
        check_numbers_v1('burst', p_burst, 1);
    if exists (select from unnest(p_rate, p_burst) x(rate, burst) where x.burst / x.rate > 36600 * 86400.0) then
        perform invalid_v1('burst', 'lasts longer than a century: lower the burst, or leave the rate out');
    end if;
end
$$;

-- The columns of messages that are to be published: arrays with an element a message, with one for all of them, or
-- with none. p_queue null: the messages have no queues of their own.
create or replace function "laneway".check_messages_v1(
    p_payload bytea[], p_queue text[], p_channel text[], p_kind text[], p_content_type text[], p_headers text[], p_key text[],
    p_key_window interval[], p_priority smallint[], p_delay interval[], p_at timestamptz[], p_expires_in interval[],
    p_expires_at timestamptz[], p_max_attempts integer[]
) returns void
language plpgsql
as $$
declare
    v_count integer := coalesce(cardinality(p_payload), 0);
    v_most integer := greatest(
        cardinality(p_queue), cardinality(p_channel), cardinality(p_kind), cardinality(p_content_type), cardinality(p_headers),
        cardinality(p_key), cardinality(p_key_window), cardinality(p_priority), cardinality(p_delay), cardinality(p_at),
        cardinality(p_expires_in), cardinality(p_expires_at), cardinality(p_max_attempts));
begin
    -- One message is looked at without a query.
    if v_count = 1 and v_most = 1
        and is_name_v1(p_channel[1]) and (p_queue is null or is_name_v1(p_queue[1])) and is_payload_v1(p_payload[1])
        and (coalesce(p_kind[1], '') = '' or is_name_v1(p_kind[1]))
        and coalesce(is_content_type_v1(p_content_type[1]), true) and coalesce(is_headers_v1(p_headers[1]), true)
        and coalesce(is_name_v1(p_key[1]), true) and coalesce(is_length_v1(p_key_window[1]), true)
        and coalesce(p_priority[1] between 0 and 200, true) and coalesce(p_max_attempts[1] >= 1, true)
        and coalesce(is_length_v1(p_delay[1]), true) and coalesce(is_time_v1(p_at[1]), true)
        and coalesce(is_length_v1(p_expires_in[1]), true) and coalesce(is_time_v1(p_expires_at[1]), true) then
        return;
    end if;
    if v_count > 10000 then
        perform invalid_v1('batch', format('has %s messages, 10000 are allowed', v_count));
    elsif v_most > greatest(v_count, 1) then
        perform invalid_v1('batch', format('has %s messages and a column of %s', v_count, v_most));
    elsif exists (
        select from unnest(array[
            cardinality(p_queue), cardinality(p_channel), cardinality(p_kind), cardinality(p_content_type), cardinality(p_headers),
            cardinality(p_key), cardinality(p_key_window), cardinality(p_priority), cardinality(p_delay), cardinality(p_at),
            cardinality(p_expires_in), cardinality(p_expires_at), cardinality(p_max_attempts)]) c(n)
        where c.n not in (0, 1, v_count))
    then
        perform invalid_v1('batch', format('has %s messages and a column of another length', v_count));
    elsif v_count > 1 and array_ndims(p_payload) = 1 and is_name_v1(p_channel[1]) and (p_queue is null or is_name_v1(p_queue[1]))
        and not exists (
            select from unnest(p_payload, p_queue, p_channel, p_kind, p_content_type, p_headers, p_key, p_key_window,
                p_priority, p_delay, p_at, p_expires_in, p_expires_at, p_max_attempts
            ) x(payload, queue, channel, kind, content_type, headers, key, key_window,
                priority, delay, at, expires_in, expires_at, max_attempts)
            where not coalesce(is_payload_v1(x.payload), false) or not is_name_v1(x.queue) or not is_name_v1(x.channel)
                or x.kind <> '' and not is_name_v1(x.kind) or not is_content_type_v1(x.content_type) or not is_headers_v1(x.headers)
                or not is_name_v1(x.key) or not is_length_v1(x.key_window) or x.priority not between 0 and 200
                or not is_length_v1(x.delay) or not is_time_v1(x.at) or not is_length_v1(x.expires_in)
                or not is_time_v1(x.expires_at) or x.max_attempts < 1)
    then
        return;
    end if;
    -- Something is wrong, or there is nothing: say what.
    perform check_payloads_v1('payload', p_payload), check_names_v1('queue', p_queue), check_names_v1('channel', p_channel),
        check_names_v1('kind', p_kind, true), check_content_types_v1(p_content_type), check_headers_v1(p_headers),
        check_names_v1('key', p_key), check_lengths_v1('key window', p_key_window), check_numbers_v1('priority', p_priority, 0, 200),
        check_lengths_v1('delay', p_delay), check_times_v1('time "at"', p_at), check_lengths_v1('expires_in', p_expires_in),
        check_times_v1('expires_at', p_expires_at), check_numbers_v1('max_attempts', p_max_attempts, 1);
    if v_count > 0 then
        perform invalid_v1('batch', 'is missing a payload, a queue or a channel, or is not a list: '
            'give arrays of one dimension that begin at 1 and hold no null there');
    end if;
end
$$;

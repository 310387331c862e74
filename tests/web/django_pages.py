"""A Django site with the dashboard: ``python -m tests.web.django_pages FILE`` tells what it saw."""

import asyncio
import json
import sys
from typing import Any

import django
from django.conf import settings

settings.configure(
    SECRET_KEY="only for tests",
    ALLOWED_HOSTS=["testserver"],
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "laneway.integrations.django",
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
    ROOT_URLCONF="tests.web.django_urls",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": sys.argv[1]}},
    USE_TZ=True,
)
django.setup()

from django.contrib.auth.models import AnonymousUser, User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.test import AsyncClient, Client, RequestFactory  # noqa: E402

from laneway.integrations.django import queue  # noqa: E402
from laneway.integrations.django.dashboard import page  # noqa: E402


async def under_asgi(user: User) -> dict[str, Any]:
    client = AsyncClient()
    await client.aforce_login(user)
    shown = await client.get("/ops/queue/channels")
    live = await client.get("/ops/queue/live")
    first = await anext(aiter(live.streaming_content))
    return {
        "page": shown.status_code,
        "live": live.headers["content-type"],
        "first": first.decode(),
    }


def stranger_posts() -> tuple[int, bool]:
    """The status, and whether the body was read."""
    request = RequestFactory().post("/ops/queue/act", b"verb=x", content_type="text/plain")
    request.user = AnonymousUser()
    return page(request, "act").status_code, hasattr(request, "_body")


def main() -> None:
    call_command("migrate", verbosity=0)
    queue.publish({"n": 1}, channel="tenant-1")
    boss = User.objects.create_superuser("boss", password="boss")
    helper = User.objects.create_user("helper", password="helper", is_staff=True)
    seen: dict[str, Any] = {}
    client = Client()
    seen["stranger"] = client.get("/ops/queue/").status_code
    seen["stranger's body"] = stranger_posts()
    client.force_login(helper)
    seen["helper"] = client.get("/ops/queue/channels").status_code
    form = {"verb": "pause_channel", "channel": "tenant-1", "back": "channels"}
    body = "&".join(f"{name}={value}" for name, value in form.items())
    kind = "application/x-www-form-urlencoded"
    act = "/ops/queue/act"
    seen["helper acts"] = client.post(act, body, content_type=kind).status_code
    client.force_login(boss)
    shown = client.get("/ops/queue/messages/1")
    seen["message"] = shown.status_code
    seen["relative"] = 'href="../channels"' in shown.content.decode()
    seen["csp"] = shown.headers["content-security-policy"].startswith("default-src 'none'")
    evil = {"HTTP_SEC_FETCH_SITE": "cross-site"}
    seen["other site"] = client.post(act, body, content_type=kind, **evil).status_code
    done = client.post(act, body, content_type=kind)
    seen["acts"] = [done.status_code, done.headers["location"].partition("=")[0]]
    seen["paused"] = queue.channel("tenant-1").policy().paused
    seen["api"] = client.get("/ops/queue/api/v1/queues").json()["data"][0]["waiting"]
    seen["live"] = client.get("/ops/queue/live").status_code
    seen["asgi"] = asyncio.run(under_asgi(boss))
    sys.stdout.write(json.dumps(seen))


main()

"""Laneway as a Django app, on the site's own connection.

``INSTALLED_APPS`` gets ``"laneway.integrations.django"``; ``manage.py migrate`` installs the
schema. Inside ``transaction.atomic()`` a message exists if the transaction commits.

>>> from laneway.integrations.django import queue
>>> queue.publish({"order": order.id}, channel=order.tenant, kind="send_receipt")
"""

from laneway.extras import needs

with needs("laneway.integrations.django", "Django", "django"):
    from .site_queue import SiteQueue

queue = SiteQueue()

__all__ = ["SiteQueue", "queue"]

"""Penstock as a Django app, on the site's own connection.

``INSTALLED_APPS`` gets ``"penstock.integrations.django"``; ``manage.py migrate`` installs the
schema. Inside ``transaction.atomic()`` a message exists if the transaction commits.

>>> from penstock.integrations.django import queue
>>> queue.publish({"order": order.id}, channel=order.tenant, kind="send_receipt")
"""

from .site import SiteQueue

queue = SiteQueue()

__all__ = ["SiteQueue", "queue"]

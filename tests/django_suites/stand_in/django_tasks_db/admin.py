from laneway.integrations.django.admin import QueuedTaskAdmin as DBTaskResultAdmin

__all__ = ["DBTaskResultAdmin"]

"""What operators see and do: workers, pauses, the audit, bulk operations, minutes."""

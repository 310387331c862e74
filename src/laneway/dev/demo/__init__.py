"""`laneway demo`: worker processes on a real queue, two faults, and a verdict."""

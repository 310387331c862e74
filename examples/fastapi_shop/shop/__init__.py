"""A shop: orders are placed by HTTP, invoices are made by a worker."""

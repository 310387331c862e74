"""The report: tables that Spark computes, or SQLite if there is little, and a page of them."""

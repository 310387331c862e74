"""The report: tables computed with Spark, and one page that shows them."""

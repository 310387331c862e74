"""History → lake → answers: the history as Parquet, checked and purged, and reports over it."""

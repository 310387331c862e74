"""The report's page: one HTML file without external resources, with plots as inline SVG."""

from .render import write_page

__all__ = ["write_page"]

"""One self-contained page: no network, light and dark, plots as inline SVG."""

from .writing import write_page

__all__ = ["write_page"]

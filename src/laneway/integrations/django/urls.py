"""For the site's urls.py: ``path("queue/", include("laneway.integrations.django.urls"))``."""

from django.urls import path

from .dashboard import page

app_name = "laneway"
urlpatterns = [path("", page, name="dashboard"), path("<path:path>", page)]

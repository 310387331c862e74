"""The addresses of the site in django_pages."""

from django.urls import include, path

urlpatterns = [path("ops/queue/", include("laneway.integrations.django.urls"))]

"""The home page."""

from django.urls import path

from console.web import streams, views

urlpatterns = [
    path("", views.home, name="home"),
    path("stream", streams.home_stream, name="home-stream"),
]

"""A platform on the database with a fake outside, driven by hand, and files of models."""

from tests.deployments._support.fixtures import platform
from tests.registry._support.model_files import linear_model, store_folder

__all__ = ["linear_model", "platform", "store_folder"]

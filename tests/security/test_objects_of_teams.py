"""Objects of a cluster cannot use what belongs to a team other than their namespace's."""

import pytest

from accounts.domain.roles import Owned
from accounts.models import Ownership
from common.errors import NotFound
from deployments.selectors.permissions import check_model_of_team
from registry.models import RegisteredModel
from tests.deployments._support.platform import Platform
from tests.scenes import team_there

pytestmark = pytest.mark.django_db


def owned(team: str, kind: Owned, name: str) -> None:
    Ownership.objects.create(team=team_there(team), kind=kind, name=name)


def test_a_model_of_another_team_is_not_there() -> None:
    platform = Platform()
    platform.version(1)
    owned("vision", Owned.NAMESPACE, "vision")
    owned("speech", Owned.MODEL, "digits")
    for uri in ("models:/digits/1", "models:/digits@champion"):
        with pytest.raises(NotFound, match="no model 'digits' that team vision of namespace vision may use"):
            check_model_of_team(uri, "vision", "digits")
    owned("speech", Owned.NAMESPACE, "speech")
    check_model_of_team("models:/digits/1", "speech", "digits")


def test_an_import_adds_no_version_to_a_model_of_another_team() -> None:
    RegisteredModel.objects.create(name="vision.digits", created_at=Platform().clock(), created_by="eve")
    owned("vision", Owned.NAMESPACE, "vision")
    owned("speech", Owned.MODEL, "vision.digits")
    with pytest.raises(NotFound):
        check_model_of_team("s3://bucket/model.onnx", "vision", "digits")
    check_model_of_team("s3://bucket/model.onnx", "vision", "other")

"""Try-out page of a model: its form, the request made from it, and the answer. Pure."""

from deployments.web.try_page.answer import Shown, shown
from deployments.web.try_page.code import Code, code_of
from deployments.web.try_page.form import Field, Request, fields_of, request_of

__all__ = ["Code", "Field", "Request", "Shown", "code_of", "fields_of", "request_of", "shown"]

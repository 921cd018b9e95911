"""Secrets that are learned while the boundary runs: redacted from then on."""

from __future__ import annotations

from dataclasses import replace

from portbook.executors.dispatch import Dispatch
from portbook.pipeline import Pipeline

__all__ = ["learn_secrets"]


def learn_secrets(pipeline: Pipeline, executor: Dispatch) -> None:
    """Redact a secret that was just learned, such as a renewed token, from now on."""
    rules = pipeline.rules
    if rules.redactor is not None:
        known = (*rules.secrets, *executor.secrets())
        pipeline.govern(replace(rules, redactor=rules.redactor.with_secrets(known)))

"""How the played scenario judges its steps."""

from io import StringIO

import pytest

from compliance.wiring.story import StepFailed, Story, expect


@pytest.fixture
def out() -> StringIO:
    return StringIO()


def test_step_within_its_target_is_ticked(out: StringIO) -> None:
    story = Story(out)

    with story.step("Verify", target=0.5) as step:
        step.seconds = 0.5

    assert "✓  1. Verify" in out.getvalue()
    assert not story.slow


def test_missed_target_is_told_and_the_story_goes_on(out: StringIO) -> None:
    story = Story(out)

    with story.step("Verify", target=0.5) as step:
        step.seconds = 0.6
        step.note = "active"

    assert "!  1. Verify" in out.getvalue()
    assert "0.600 s (target 0.5 s)  active" in out.getvalue()
    assert story.slow == [1]
    assert not story.failures


def test_unmet_expectation_ends_the_story(out: StringIO) -> None:
    story = Story(out)

    with pytest.raises(StepFailed), story.step("Verify"):
        expect(False, "status is revoked")

    assert "✗  1. Verify" in out.getvalue()
    assert story.failures == ["Verify"]

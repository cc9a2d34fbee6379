"""What a module of conformance tests is written with (docs/conformance-tests.md)."""

from conformance.suite.recorded import Recorded, Span
from conformance.suite.requirement import invariants, requirement
from conformance.suite.scene import Scene
from conformance.suite.scene_environment import SceneEnvironment

__all__ = ["Recorded", "Scene", "SceneEnvironment", "Span", "invariants", "requirement"]

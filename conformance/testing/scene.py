"""Everything that a module of conformance tests imports for scenes (docs/conformance-tests.md)."""

from conformance.suite.recorded import Recorded, Span, invariants
from conformance.suite.requirement import requirement
from conformance.suite.scene import Scene
from conformance.suite.scene_environment import SceneEnvironment

__all__ = ["Recorded", "Scene", "SceneEnvironment", "Span", "invariants", "requirement"]

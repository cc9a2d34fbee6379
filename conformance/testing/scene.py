"""The names that a module of conformance tests imports to define scenes (docs/conformance-tests.md)."""

from conformance.suite.registry.requirement import requirement
from conformance.suite.scenes.recorded import Recorded, Span, invariants
from conformance.suite.scenes.scene import Exclusive, Scene
from conformance.suite.scenes.scene_environment import SceneEnvironment

__all__ = ["Exclusive", "Recorded", "Scene", "SceneEnvironment", "Span", "invariants", "requirement"]

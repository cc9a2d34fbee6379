"""The conformance tests, one folder per profile. They use the packages suite, history and grove, never the cluster
package."""

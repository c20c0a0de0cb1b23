//go:build race

package main

// raceDetector is true if the race detector is on, which needs memory of its own.
const raceDetector = true

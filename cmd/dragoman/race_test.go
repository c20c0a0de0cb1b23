//go:build race

package main

// raceDetector: the detector keeps memory of its own for all that it watches.
const raceDetector = true

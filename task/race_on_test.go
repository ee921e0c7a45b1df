//go:build race

package task_test

// raceDetector says that the race detector makes everything several times slower.
const raceDetector = true

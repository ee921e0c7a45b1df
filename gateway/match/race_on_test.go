//go:build race

package match_test

const raceDetector = true

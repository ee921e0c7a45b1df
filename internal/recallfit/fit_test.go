package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/continuo-log/continuo/internal/evidence"
)

// TestCrossValidated holds what the features reach on conversations that the weights were not fitted to, at 2 000 tokens.
func TestCrossValidated(t *testing.T) {
	folder := os.Getenv("CONTINUO_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "data")
	}
	paths := []string{filepath.Join(folder, "locomo.jsonl.gz"), filepath.Join(folder, "beam.jsonl.gz")}
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			t.Skipf("SKIPPED: there is no %s: set CONTINUO_DATA to the folder that holds it", path)
		}
	}
	if testing.Short() {
		t.Skip("SKIPPED: fits the weights five times")
	}
	all, err := loadAll(paths)
	if err != nil {
		t.Fatal(err)
	}
	model := fitter{penalty: 10, own: 30}.crossValidate(all)
	for file, least := range [][2]float64{{.90, .86}, {.67, .54}} {
		total, _ := measure(all, file, model)
		for _, budget := range budgets {
			recall, full := total[budget].Means()
			t.Logf("%s %d tokens: recall %.3f, full %.3f of %d", filepath.Base(paths[file]), budget, recall, full, total[budget].Questions)
		}
		if recall, full := total[2000].Means(); recall < least[0] || full < least[1] {
			t.Errorf("%s: recall %.3f and full %.3f at 2 000 tokens, want at least %v", paths[file], recall, full, least)
		}
	}
}

func TestScoreCountsQuestions(t *testing.T) {
	var s evidence.Score
	s.Add([]int{1, 2}, func(i int) bool { return i == 1 })
	s.Add([]int{3}, func(int) bool { return true })
	if recall, full := s.Means(); recall != .75 || full != .5 {
		t.Errorf("recall %v, full %v; want .75 and .5", recall, full)
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/evidence"
)

const recallView = "recall"

// row is a line of continuo eval recall --json.
type row struct {
	File    string
	Tokens  int
	Recalls bool
	Result  map[string]struct {
		Questions    int
		Recall, Full float64
	}
}

// throughView measures each part of the conversations in a view of a program with the weights that were fitted to
// the others. It runs in the folder of the module.
func (f fitter) throughView(all []*question, paths []string, view string) error {
	folder, err := os.MkdirTemp("", "continuo-recallfit-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	sums := map[string]*evidence.Score{}
	for fold := range folds {
		model := f.fit(all, func(q *question) bool { return q.fold != fold })
		rows, err := evaluate(folder, model, paths, fold, view)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if view != recallView && !r.Recalls {
				continue
			}
			if all := r.Result["all"]; r.Tokens == categorized || r.Tokens == 0 {
				fmt.Printf("part %d: %s %d tokens %.3f/%.3f of %d\n", fold+1, r.File, r.Tokens, all.Recall, all.Full, all.Questions)
			}
			for category, part := range r.Result {
				key := fmt.Sprintf("%s %d tokens %s", r.File, r.Tokens, category)
				if sums[key] == nil {
					sums[key] = &evidence.Score{}
				}
				n := float64(part.Questions)
				sums[key].Sum(evidence.Score{Questions: part.Questions, Recall: n * part.Recall, Full: n * part.Full})
			}
		}
	}
	for _, path := range paths {
		for _, budget := range append([]int{0}, budgets...) {
			show(fmt.Sprintf("%s %d tokens ", filepath.Base(path), budget), sums, budget == categorized || budget == 0)
		}
	}
	return nil
}

// categorized is the budget for which parts and categories are shown.
const categorized = 2000

func show(prefix string, sums map[string]*evidence.Score, withCategories bool) {
	all := sums[prefix+"all"]
	if all == nil {
		return
	}
	recall, full := all.Means()
	fmt.Printf("cross-validated through the view: %s%.3f/%.3f of %d\n", prefix, recall, full, all.Questions)
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		category, ok := strings.CutPrefix(key, prefix)
		if ok && withCategories && category != "all" {
			recall, full := sums[key].Means()
			fmt.Printf("    %-26s %4d  %.3f/%.3f\n", category, sums[key].Questions, recall, full)
		}
	}
}

// evaluate runs continuo eval recall with a model on one part of the conversations.
func evaluate(folder string, m *model, paths []string, fold int, view string) ([]row, error) {
	weights, err := filepath.Abs(filepath.Join("recall", "weights.go"))
	if err != nil {
		return nil, err
	}
	replaced := filepath.Join(folder, "weights.go")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {weights: replaced}})
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{replaced: table(m), filepath.Join(folder, "overlay.json"): overlay}
	command := []string{"run", "-overlay", filepath.Join(folder, "overlay.json"), "./cmd/continuo", "eval", "recall", "--json", "--view", view}
	if view != recallView {
		command = append(command, "--tokens", "0")
	}
	for _, path := range paths {
		conversations, err := evidence.Load(path)
		if err != nil {
			return nil, err
		}
		var lines bytes.Buffer
		encoder := json.NewEncoder(&lines)
		for k := range conversations {
			if k%folds != fold {
				continue
			}
			if err := encoder.Encode(&conversations[k]); err != nil {
				return nil, err
			}
		}
		part := filepath.Join(folder, filepath.Base(path))
		files[part] = lines.Bytes()
		command = append(command, part)
	}
	for name, contents := range files {
		if err := os.WriteFile(name, contents, 0o600); err != nil {
			return nil, err
		}
	}
	run := exec.Command("go", command...)
	run.Stderr = os.Stderr
	output, err := run.Output()
	if err != nil {
		return nil, fmt.Errorf("continuo eval recall: %w", err)
	}
	var rows []row
	return rows, json.Unmarshal(output, &rows)
}

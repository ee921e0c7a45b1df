package view_test

import (
	"fmt"

	crewview "github.com/continuo-log/continuo/crew/view"
	"github.com/continuo-log/continuo/window"
)

// A role whose agent remembers is shown what is new behind its cursor, and the request that all began with.
func ExampleView() {
	log := &entries{}
	log.User("Build a shop.")
	log.answer("designer", "It is green.")
	log.User("And a page for coffee.")
	view := crewview.View{
		View: window.View{Name: "role:builder", LowWater: 0.6},
		Role: crewview.Role{Name: "builder", Kind: crewview.Delta, Cursor: 2},
	}
	plan, err := view.Build(log, window.Input{At: 3, Counter: chars{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(crewview.Text(plan))
	fmt.Println("the cursor may move to", plan.Role.Through)
	// Output:
	// [ORIGINAL REQUEST]
	// User: Build a shop.
	// [END REQUEST]
	//
	// User: And a page for coffee.
	// the cursor may move to 3
}

package form

import (
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// groupColumns are the columns of the groups, in the order in which they sort.
var groupColumns = map[continuo.SpendingGroup][]string{
	continuo.SpendingByDay: {"day"}, continuo.SpendingByKey: {"key_id"}, continuo.SpendingByUser: {"user_id"},
	continuo.SpendingByModel: {"model", "provider"},
}

// SelectSpending is the statement of a query: the columns project_id, key_id, day, user_id, provider and model, ” where the
// query does not group by them, and sums, which ends with the FROM clause. Parameter writes the n-th parameter, from 1.
func SelectSpending(query continuo.SpendingQuery, sums string, parameter func(n int) string) (statement string, args []any) {
	columns := map[string]string{"key_id": "''", "day": "''", "user_id": "''", "provider": "''", "model": "''"}
	order := []string{"project_id"}
	for _, by := range query.By {
		for _, column := range groupColumns[by] {
			if columns[column] != column {
				columns[column], order = column, append(order, column)
			}
		}
	}
	statement = "SELECT project_id, " + columns["key_id"] + ", " + columns["day"] + ", " + columns["user_id"] + ", " + columns["provider"] + ", " +
		columns["model"] + ", " + sums
	conditions, args := spendingConditions(query, parameter)
	if len(conditions) > 0 {
		statement += "WHERE " + strings.Join(conditions, " AND ") + " "
	}
	by := strings.Join(order, ", ")
	return statement + "GROUP BY " + by + " ORDER BY " + by, args
}

func spendingConditions(query continuo.SpendingQuery, parameter func(n int) string) (conditions []string, args []any) {
	where := func(column, operator, value string) {
		args = append(args, value)
		conditions = append(conditions, column+" "+operator+" "+parameter(len(args)))
	}
	if query.ProjectID != "" {
		where("project_id", "=", query.ProjectID)
	}
	if query.KeyID != nil {
		where("key_id", "=", *query.KeyID)
	}
	if query.UserID != nil {
		if *query.UserID != "" {
			conditions = append(conditions, "user_id <> ''") // the condition of the index
		}
		where("user_id", "=", *query.UserID)
	}
	if query.From != "" {
		where("day", ">=", query.From)
	}
	if query.To != "" {
		where("day", "<=", query.To)
	}
	return conditions, args
}

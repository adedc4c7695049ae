// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// cut gives one page of the list and the token of the next. A token is the position that it starts at.
func cut[T any](current fault, list []T, token string, most int32) (page []T, next string, err error) {
	start := 0
	if token != "" {
		start, err = strconv.Atoi(token)
		if err != nil || start < 0 || (start > len(list) && !current.EndlessPages) {
			return nil, "", status.Errorf(codes.Aborted, "%q is no token of mine", token)
		}
	}
	if most < 0 {
		return nil, "", status.Error(codes.InvalidArgument, "max_entries is negative")
	}
	end := len(list)
	if most > 0 && !current.IgnoreMaxEntries {
		end = min(end, start+int(most))
	}
	page = list[min(start, len(list)):max(end, min(start, len(list)))]
	if end < len(list) || current.EndlessPages {
		next = strconv.Itoa(start + max(1, len(page)))
	}
	return page, next, nil
}

// Package roster is the list by which the parts of an operator's folder know each other, under trust split: the
// operator's key, the folder, and of each task that it ever worked on the file of its marks.
//
// Each is told from every copy and every other by a random [ID] that was drawn when it was made. A folder in which a
// part is missing, or is of another folder, is not the one in which its identity worked, and what it does not know
// could be released again. The packages of the two folders say what they refuse.
//
// A list that was copied together with all that it names is told from its original by the place of the key's file on
// its disk (package internal/disk), which a copy of files does not keep, and by the processes that acted from it. A copy
// of the whole disk or machine keeps the place too: nobody can tell which of the two is the original.
package roster

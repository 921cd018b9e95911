"""What goes on between running calls and their callers: questions and answers, tasks, notices."""

@test "passes" {
  true
}

@test "fails" {
  [ $((1 + 1)) -eq 3 ]
}

@test "is skipped" {
  skip "not today"
}

@test "misbehaves" {
  if [ "$MISBEHAVE" = crash ]; then kill -SEGV "$PPID" $$; fi
  if [ "$MISBEHAVE" = hang ]; then sleep 3600; fi
}

#!/bin/sh
case "$MISBEHAVE" in
crash) kill -SEGV $$ ;;
hang) sleep 3600 ;;
esac

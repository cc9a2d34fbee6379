#!/bin/sh
# A program that is ready and asks nobody anything.
echo ready
exec tail -f /dev/null

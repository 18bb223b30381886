#!/bin/sh
echo tally

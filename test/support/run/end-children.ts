// A test that failed ends the processes that it started: else the next of its file find them, and its database can't be
// dropped.
import { afterEach, beforeEach } from 'vitest'
import { killStartedSince } from '../process.ts'

let began = 0
beforeEach(() => {
  began = performance.now()
})
afterEach(async ({ task }) => {
  if (task.result?.state === 'fail') await killStartedSince(began)
})

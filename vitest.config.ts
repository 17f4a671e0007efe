// How tests run: a few files at a time, each process taking one after the other, against real servers
// (test/support/run/setup.ts).
import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/support/run/longest-first.ts'
import { openReporter } from './test/support/run/reporter.ts'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    environment: 'node',
    pool: 'forks',
    // Files share what is loaded, which takes half a second for each: so each leaves its process as it found it.
    isolate: false,
    // Node loads them as it loads the product, with the compiled code that it keeps: Vite's own loader compiles all anew
    // in each process.
    experimental: { viteModuleRunner: false },
    // Two for each core, because a file often waits for a server or for a process to start.
    maxWorkers: Math.max(2, 2 * availableParallelism()),
    sequence: { sequencer: LongestFirst },
    globalSetup: ['test/support/run/setup.ts'],
    setupFiles: ['test/support/run/end-children.ts'],
    // A condition awaited with its own deadline says more than a test that is cut off: these are the last resort.
    // On one core beside a load, one that takes a minute takes ten.
    testTimeout: 1_800_000,
    hookTimeout: 1_800_000,
    teardownTimeout: 60_000,
    expect: { poll: { timeout: 300_000 } },
    passWithNoTests: false,
    reporters: process.env['TOKENMILL_TEST_RUN'] ? [] : [openReporter()],
  },
})

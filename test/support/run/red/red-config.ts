// A run of its own, without servers.
import { defineConfig } from 'vitest/config'

export default defineConfig({ test: { include: ['test/support/run/red/red.ts'], reporters: [] } })

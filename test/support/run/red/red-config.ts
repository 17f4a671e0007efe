// The configuration of a separate run without servers.
import { defineConfig } from 'vitest/config'

export default defineConfig({ test: { include: ['test/support/run/red/red.ts'], reporters: [] } })

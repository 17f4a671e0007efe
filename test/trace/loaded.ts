// A script that loads what every role and command loads at its start, and prints the packages of OpenTelemetry that
// were loaded. With an argument it loads the tracer, too.
import { registerHooks } from 'node:module'

const found = new Set<string>()
registerHooks({
  load(url, context, next) {
    const [, name] = /node_modules\/(@opentelemetry\/[^/]+)\//.exec(url) ?? []
    if (name !== undefined) found.add(name)
    return next(url, context)
  },
})
await import('../../cli/commands/run.ts')
await import('../../cli/commands/migrate.ts')
await import('../../cli/commands/submit.ts')
await import('../../cli/process/worker-process.ts')
if (process.argv[2] === 'on') await import('../../src/trace/otel.ts')
process.stdout.write(`${JSON.stringify([...found].sort())}\n`)
process.exit(0)

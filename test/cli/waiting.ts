// What the suites about waiting commands share: the jobs, the environment of a sender, and the wait for a command's
// end.
import type { Engine } from '../support/engines.ts'
import type { Installation } from '../support/installation.ts'
import type { Child, Exit } from '../support/process.ts'
import { until } from '../support/until.ts'

const NOT_FOUND = `t${'0'.repeat(26)}`
const ENDS = { what: 'the end of the command' }

export const lifecycle = { kind: 'token-lifecycle', request: { id: NOT_FOUND, action: 'SUSPEND' } }

/** On Redis the sender has no store; on PostgreSQL it has the store. */
export function senderEnv(engine: Engine, { env }: Installation): Record<string, string | undefined> {
  const producer = engine.redisUrls ? { DATABASE_URL: undefined, TOKENMILL_KEK_FILE: undefined } : {}
  return { ...env, ...producer, TOKENMILL_METRICS_PORT: undefined, TOKENMILL_LOG_LEVEL: undefined }
}

export async function ended(child: Child): Promise<Exit> {
  let exit: Exit | undefined
  child.exit.then(
    found => {
      exit = found
    },
    () => {},
  )
  return until(() => exit, ENDS)
}

// Starts as many processes for interactive kinds as `tokenmill workers` does on this machine.
import { CATALOGUE } from '../../src/job/composition.ts'
import type { Installation } from '../../test/support/installation.ts'
import { countProcesses, type Supervised } from '../../workers/process/supervise.ts'

const given = process.env['TOKENMILL_INTERACTIVE_PROCESSES']

/** `TOKENMILL_INTERACTIVE_PROCESSES` sets another number, as it does for the command. */
export function startInteractiveWorkers(installation: Installation): Promise<Supervised> {
  const processes = given === undefined ? {} : { interactive: Number(given) }
  const { interactive } = countProcesses({ catalogue: CATALOGUE, processes })
  return installation.startWorkers({ processes: interactive, roles: ['interactive'] })
}

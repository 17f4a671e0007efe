// Runs tokenmill commands one after the other in one process, for `runCommand` (../command.ts). In a separate process
// most of a command's time is Node's start and the loading of modules. Each command gets its own environment, folder,
// standard input and exit status.
import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'
import { Readable } from 'node:stream'

// `migrate` lowers the priority of its process for good, which would also slow the commands after it.
os.setPriority = () => {}
syncBuiltinESMExports()
const { run } = await import('../../../cli/main.ts')

export interface CommandRequest {
  words: readonly string[]
  env: NodeJS.ProcessEnv
  cwd: string
  /** All of standard input. */
  stdin: string
  /** Written to standard output and standard error once the command has ended. */
  mark: string
}

export interface CommandEnd {
  code: number
}

/**
 * Commands run one after the other, because they share the working directory, the exit status and the streams of this
 * process.
 */
let last = Promise.resolve()

process.on('message', (request: CommandRequest) => {
  last = last.then(() => serve(request))
})
process.on('disconnect', () => process.exit())

async function serve({ words, env, cwd, stdin, mark }: CommandRequest): Promise<void> {
  process.chdir(cwd)
  process.exitCode = undefined
  const { stdout, stderr } = process
  const status = await run(words, { env, stdin: Readable.from([stdin]), stdout, stderr })
  const code = status === 0 ? Number(process.exitCode ?? 0) : status
  process.exitCode = undefined
  // Writes to pipes are synchronous, also those of the log, so nothing of this command comes after its mark.
  stdout.write(mark)
  stderr.write(mark)
  process.send?.({ code } satisfies CommandEnd)
}

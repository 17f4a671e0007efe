// Runs tokenmill commands one after the other in one process, for `runCommand` (../command.ts): Node's start and the
// loading of modules are most of what a command of its own takes. A command here has its own environment, folder,
// standard streams and exit status; only its end isn't the end of a process.
import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'
import { Readable } from 'node:stream'

// `migrate` lowers the priority of its process for good. The commands after it shall not have it.
os.setPriority = () => {}
syncBuiltinESMExports()
const { run } = await import('../../../cli/main.ts')

export interface CommandRequest {
  words: readonly string[]
  env: NodeJS.ProcessEnv
  cwd: string
  /** All of standard input. */
  stdin: string
  /** Written to both streams once the command has ended. */
  mark: string
}

export interface CommandEnd {
  code: number
}

/** Commands wait for one another: the working directory, the exit status and the streams are the process's. */
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
  // Pipes are written at once, what the log wrote included: nothing of this command comes after its mark.
  stdout.write(mark)
  stderr.write(mark)
  process.send?.({ code } satisfies CommandEnd)
}

// Compiles the sources of a package with the project's own TypeScript.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const TSC = fileURLToPath(new URL('../../node_modules/.bin/tsc', import.meta.url))

/** `project`: the path of a tsconfig, or of its folder. Throws with what the compiler says if the sources are wrong. */
export async function compile(project: string, out: string): Promise<void> {
  const words = ['-p', project, '--outDir', out, '--pretty', 'false']
  await promisify(execFile)(TSC, words).catch(({ stdout }: { stdout?: string }) => {
    throw new Error(`the sources do not compile:\n${stdout}`)
  })
}

"""Commands of Slurm that run a job array here and now: what submitit hands to `sbatch`, and that
its jobs find their way back, can be seen without a cluster. Nothing is queued or limited."""

from pathlib import Path

JOB = 4711

# Each task of the array in turn, with the variables that Slurm sets for it.
SBATCH = f"""#!/bin/sh
cp "$1" "$FAKE_SLURM/sbatch.sh"
last=$(sed -n 's/^#SBATCH --array=0-\\([0-9]*\\)%.*/\\1/p' "$1")
(
  cd "$FAKE_SLURM_FROM"
  for task in $(seq 0 "$last"); do
    SLURM_JOB_ID=$(({JOB} + task)) SLURM_ARRAY_JOB_ID={JOB} SLURM_ARRAY_TASK_ID=$task \\
    SLURM_JOB_NUM_NODES=1 SLURM_NODEID=0 SLURM_NTASKS=1 SLURM_PROCID=0 SLURM_LOCALID=0 \\
    SLURM_JOB_NODELIST=here sh "$FAKE_SLURM/sbatch.sh"
  done
) > "$FAKE_SLURM/log" 2>&1 &
echo "Submitted batch job {JOB}"
"""
# Its own options, then the command.
SRUN = """#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in
    --output|--error) shift 2 ;;
    --*) shift ;;
    *) break ;;
  esac
done
exec "$@"
"""
SACCT = f"""#!/bin/sh
echo 'JobID|State|NodeList'
echo '{JOB}_[0-99]|RUNNING|here'
"""


def fake_slurm(folder: Path) -> dict[str, str]:
    """Write the commands to `folder`/bin; the environment in which they are found. What `sbatch`
    was given is afterwards in `folder`/sbatch.sh."""
    (folder / "bin").mkdir(parents=True)
    for name, text in (("sbatch", SBATCH), ("srun", SRUN), ("sacct", SACCT)):
        path = folder / "bin" / name
        path.write_text(text)
        path.chmod(0o755)
    return {"FAKE_SLURM": str(folder), "FAKE_SLURM_FROM": str(Path.cwd())}

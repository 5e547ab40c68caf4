"""test_cli_ended.py COMMTRACE TRACEGEN: who ends merge while it writes keeps the
job.db that there was, and finds nothing else beside it."""
import glob
import os
import signal
import subprocess
import sys
import tempfile

COMMTRACE, TRACEGEN = sys.argv[1:3]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_by(number):
    merge = subprocess.Popen([COMMTRACE, "merge", "--db", "job.db", "job"])
    while not glob.glob("job.db.*") and merge.poll() is None:
        pass
    merge.send_signal(number)
    assert merge.wait() == -number, (number, merge.returncode)
    assert os.listdir(".") == ["job"] or sorted(os.listdir(".")) == [
        "job", "job.db"], os.listdir(".")


with tempfile.TemporaryDirectory() as tmp:
    os.chdir(tmp)
    subprocess.run([TRACEGEN, "--tp", "4", "--ops", "200000", "--out", "job"],
                   check=True, stdout=subprocess.DEVNULL)
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)  # whoever started this may ignore it
        end_by(number)
    subprocess.run([COMMTRACE, "merge", "--db", "job.db", "job"], check=True)
    with open("job.db", "rb") as f:
        whole = f.read()
    end_by(signal.SIGTERM)
    with open("job.db", "rb") as f:
        assert f.read() == whole
    # Who ignores the signal, as nohup does, is not ended by it.
    merge = subprocess.Popen(["sh", "-c", "trap '' HUP; exec \"$@\"", "sh",
                              COMMTRACE, "merge", "--db", "job.db", "job"])
    while not glob.glob("job.db.*") and merge.poll() is None:
        pass
    merge.send_signal(signal.SIGHUP)
    assert merge.wait() == 0
    os.chdir("/")
print("ended while it wrote: nothing is left")

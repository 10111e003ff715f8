import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryNTimes;

/**
 * Curator's InterProcessMutex, with the same line protocol as kazoo-lock.py. nanoTime is CLOCK_MONOTONIC
 * on Linux.
 */
public class CuratorLock {
  private static final int LONG_SECTION_EVERY = 16;
  private static final int CONNECT_MS = 15_000;

  private final CuratorFramework client;
  private final String path;
  private final InterProcessMutex lock;

  private CuratorLock(CuratorFramework client, String path) {
    this.client = client;
    this.path = path;
    this.lock = new InterProcessMutex(client, path);
  }

  public static void main(String[] args) throws Exception {
    int sessionMs = (int) (Double.parseDouble(args[2]) * 1000);
    RetryNTimes retries = new RetryNTimes(3, 100);
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(args[0], sessionMs, CONNECT_MS, retries);
    CuratorLock subject = new CuratorLock(client, args[1]);
    // The thread that acquired must release, so a worker thread does both. This thread only reads, so
    // that it notices the end of its input even while no server can be reached.
    ExecutorService worker = Executors.newSingleThreadExecutor();
    worker.execute(subject::connect);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.split(" ");
      worker.execute(() -> subject.answer(words));
    }
    // The process that started this one has ended.
    Runtime.getRuntime().halt(0);
  }

  private void connect() {
    try {
      client.start();
      client.blockUntilConnected();
      System.out.println("ready");
    } catch (Exception error) {
      error.printStackTrace();
      Runtime.getRuntime().halt(1);
    }
  }

  private void answer(String[] words) {
    try {
      if (words[0].equals("acquire")) {
        lock.acquire();
        System.out.println("held " + System.nanoTime());
      } else if (words[0].equals("release")) {
        long left = System.nanoTime();
        lock.release();
        System.out.println("released " + left);
      } else {
        long from = Long.parseLong(words[2]);
        contend(Integer.parseInt(words[1]), from, Long.parseLong(words[3]));
      }
    } catch (Exception error) {
      error.printStackTrace();
      Runtime.getRuntime().halt(1);
    }
  }

  private void contend(int waiters, long from, long until) throws Exception {
    List<String> sections = Collections.synchronizedList(new ArrayList<>());
    long cpu = cpuNanos();
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < waiters; i++) {
      int waiter = i;
      threads.add(new Thread(() -> loop(waiter, from, until, sections)));
    }
    for (Thread thread : threads) thread.start();
    for (Thread thread : threads) thread.join();
    sections.add("done " + (cpuNanos() - cpu));
    System.out.println(String.join("\n", sections));
  }

  private void loop(int waiter, long from, long until, List<String> sections) {
    try {
      InterProcessMutex own = new InterProcessMutex(client, path);
      TimeUnit.NANOSECONDS.sleep(Math.max(0, from - System.nanoTime()));
      for (long asked = System.nanoTime(); asked < until; asked = System.nanoTime()) {
        own.acquire();
        long entered = System.nanoTime();
        if (sections.size() % LONG_SECTION_EVERY == 0) Thread.yield();
        sections.add(waiter + " " + asked + " " + entered + " " + System.nanoTime());
        own.release();
      }
    } catch (Exception error) {
      error.printStackTrace();
      Runtime.getRuntime().halt(1);
    }
  }

  private static long cpuNanos() {
    return ((com.sun.management.OperatingSystemMXBean)
            java.lang.management.ManagementFactory.getOperatingSystemMXBean())
        .getProcessCpuTime();
  }
}
